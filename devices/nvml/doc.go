// Package nvml finds a host's NVIDIA GPUs through the driver's management
// library, their kinds, how they are partitioned and how each pair is
// connected, and watches their changes. It reports the driver's answers
// and warns where the driver contradicts itself; it decides nothing about
// health or placement.
//
// The library (libnvidia-ml.so.1) is loaded at run time, so a program with
// this package runs on hosts without it. Its symbols are bound lazily, each at
// its first call: never link with -z now. A symbol that an older driver lacks
// would end the process at that call, so every function which not all drivers
// have is looked up before.
//
// This package is the only importer of go-nvml. go-nvml and the dynamic linker
// keep one library per process: the first that answered stays bound until the
// process ends, and another is refused. A program holds one Source at a
// time; its methods may be called from any goroutine, and their calls into the
// library wait for each other.
package nvml

import (
	"errors"
	"fmt"
)

// ErrNoDriver is the error of Discover, wrapped, on a host without
// NVIDIA's library or with its kernel driver not loaded. Such a host is one
// without GPUs, not a broken one.
var ErrNoDriver = errors.New("no NVIDIA driver")

// ErrNoLibrary is ErrNoDriver of a host whose library cannot be opened: it is not
// there, or not at the path that was given.
var ErrNoLibrary = fmt.Errorf("%w: the library is absent", ErrNoDriver)

// ErrHung is the error of a Source, wrapped, while a call that an ended Watch
// left behind has not returned from the driver.
var ErrHung = errors.New("a call into the driver has not returned")

// Option changes how a Source discovers.
type Option func(*options)

type options struct {
	numaNode func(busID string) (int, bool)
}

// WithNUMANode has Discover ask lookup for a device's NUMA node where the
// driver does not report one. The address comes as the kernel prints it,
// "0000:07:00.0". Discover calls lookup while it holds the Source's lock.
func WithNUMANode(lookup func(busID string) (node int, ok bool)) Option {
	return func(o *options) { o.numaNode = lookup }
}
