//go:build cgo && linux

package nvml

// Open loads the library at libraryPath, "" for the library of the dynamic
// linker, and asks once whether the driver answers. Open waits for the
// driver, seconds on a host without persistence mode.
//
// A missing library or driver is ErrNoDriver. Other errors: the file is no
// NVML library, the library and the kernel driver do not match, or this
// process holds another NVML library.
func Open(libraryPath string, opts ...Option) (*Source, error) {
	var o options
	for _, apply := range opts {
		apply(&o)
	}
	return open(libraryPath, o, func(string, *card) {})
}
