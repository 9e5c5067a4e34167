// Package integration starts the real programs and checks what people rely on:
// which devices are handed out, in which order, all or nothing, and that
// everything running stays where it was when any of the programs is killed. It
// holds tests alone. The programs are built once per run of the tests; GPUs
// come from the profiles of devices/fake, through NVML's real dlopen path
// where muster-agent looks for them.
package integration
