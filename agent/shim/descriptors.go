package shim

import (
	"fmt"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// SealDescriptors keeps the descriptors of this program from the programs started here, but
// standard input, output and error. The call comes before this program opens a file, see
// [Become].
func SealDescriptors() error {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	return sealEach() // a kernel before Linux 5.11
}

// sealEach is SealDescriptors by the list of the descriptors.
func sealEach() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("the descriptors of this process: %w", err)
	}
	for _, e := range open {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 2 {
			unix.CloseOnExec(n)
		}
	}
	return nil
}
