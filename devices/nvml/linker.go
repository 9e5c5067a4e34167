//go:build cgo && linux

package nvml

/*
#cgo LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

// muster_bound reports whether this process has a global nvmlInit_v2.
static int muster_bound(void) { return dlsym(RTLD_DEFAULT, "nvmlInit_v2") != NULL; }

// muster_loaded reports whether the library at path is in this process.
static int muster_loaded(const char *path)
{
	void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	if (handle == NULL)
		return 0;
	dlclose(handle);
	return 1;
}
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// refuseSecond fails if this process has bound another library than path. The
// linker resolves a symbol once for the life of a process, and keeps the
// library that has it: calls meant for a second one would reach the first.
// (go-nvml's own wrapper of dlopen takes a library that is not loaded for one
// that is, since RTLD_NOLOAD sets no error.)
func refuseSecond(path string) error {
	if C.muster_bound() == 0 {
		return nil
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	if C.muster_loaded(name) == 0 {
		return fmt.Errorf("open NVML library %s: this process is bound to another NVML library until it ends: restart it to change the library", path)
	}
	return nil
}
