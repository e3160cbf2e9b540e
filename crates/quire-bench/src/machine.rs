//! What was measured on, as far as the system says.

use std::fs;

/// Describes the machine in a line.
pub fn describe() -> String {
    let processor = field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let memory = field("/proc/meminfo", "MemTotal").and_then(|size| size.split_whitespace().next()?.parse::<u64>().ok());
    let memory = memory.map(|kib| format!(", {} GiB", kib.div_ceil(1024 * 1024))).unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").ok().and_then(|load| load.split_whitespace().next().map(str::to_owned));
    let load = load.map(|load| format!("; load before it began: {load}")).unwrap_or_default();
    format!("{processor}, {cores} cores{memory}, {}{load}", std::env::consts::OS)
}

/// Returns how many bytes of memory this process holds; none where the system does not say.
pub fn resident_bytes() -> Option<u64> {
    let kib = field("/proc/self/status", "VmRSS")?;
    Some(kib.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim_start().strip_prefix(':')?.trim().to_owned()))
}
