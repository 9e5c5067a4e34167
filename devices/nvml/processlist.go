//go:build cgo && linux

package nvml

/*
#cgo LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

// muster_processes calls one of NVML's functions that list processes: all have
// these arguments.
static int muster_processes(const char *function, void *device, unsigned int *count, void *infos)
{
	int (*list)(void *, unsigned int *, void *) = dlsym(RTLD_DEFAULT, function);
	return list == NULL ? 13 : list(device, count, infos);
}
*/
import "C"

import (
	"encoding/binary"
	"reflect"
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Sizes of an entry: version 1 has a process and its memory, versions 2 and 3
// name the instances too. The process is the first of both.
const (
	processInfoSizeV1 = 16
	processInfoSize   = 24
)

// maxProcesses bounds the processes that are read of one device.
const maxProcesses = 4096

// listProcesses calls a function by its name. go-nvml's own call believes the
// count that the library writes, and asks without end for more room where the
// library always wants more.
func listProcesses(call string, device nvml.Device, size int) ([]int, nvml.Return) {
	name := C.CString(call)
	defer C.free(unsafe.Pointer(name))
	handle := unsafe.Pointer(reflect.ValueOf(device).Field(0).Pointer())
	for room := 16; ; room *= 4 {
		room = min(room, maxProcesses)
		infos := make([]byte, room*size)
		count := C.uint(room)
		ret := nvml.Return(C.muster_processes(name, handle, &count, unsafe.Pointer(&infos[0])))
		if ret == nvml.ERROR_INSUFFICIENT_SIZE && room < maxProcesses {
			continue
		}
		if ret != nvml.SUCCESS && ret != nvml.ERROR_INSUFFICIENT_SIZE {
			return nil, ret
		}
		if ret == nvml.SUCCESS && int64(count) > int64(room) {
			return nil, nvml.ERROR_UNKNOWN // more than there was room for: nonsense
		}
		var pids []int
		for i := range min(int64(count), int64(room)) {
			pids = append(pids, int(binary.NativeEndian.Uint32(infos[int(i)*size:])))
		}
		return pids, nvml.SUCCESS
	}
}
