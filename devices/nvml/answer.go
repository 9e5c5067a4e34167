//go:build cgo && linux

package nvml

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// answer is a call's return code as an error. Its words are those of NVML's own
// nvmlErrorString, which is not asked: a library may lack it, and a driver that
// hangs must not keep a warning from being made.
type answer nvml.Return

var answerWords = map[nvml.Return]string{
	nvml.ERROR_UNINITIALIZED:             "Uninitialized",
	nvml.ERROR_INVALID_ARGUMENT:          "Invalid Argument",
	nvml.ERROR_NOT_SUPPORTED:             "Not Supported",
	nvml.ERROR_NO_PERMISSION:             "Insufficient Permissions",
	nvml.ERROR_ALREADY_INITIALIZED:       "Already Initialized",
	nvml.ERROR_NOT_FOUND:                 "Not Found",
	nvml.ERROR_INSUFFICIENT_SIZE:         "Insufficient Size",
	nvml.ERROR_INSUFFICIENT_POWER:        "Insufficient External Power",
	nvml.ERROR_DRIVER_NOT_LOADED:         "Driver Not Loaded",
	nvml.ERROR_TIMEOUT:                   "Timeout",
	nvml.ERROR_IRQ_ISSUE:                 "Interrupt Request Issue",
	nvml.ERROR_LIBRARY_NOT_FOUND:         "NVML Shared Library Not Found",
	nvml.ERROR_FUNCTION_NOT_FOUND:        "Function Not Found",
	nvml.ERROR_CORRUPTED_INFOROM:         "Corrupted infoROM",
	nvml.ERROR_GPU_IS_LOST:               "GPU is lost",
	nvml.ERROR_RESET_REQUIRED:            "GPU requires reset",
	nvml.ERROR_OPERATING_SYSTEM:          "GPU access blocked by the operating system",
	nvml.ERROR_LIB_RM_VERSION_MISMATCH:   "Driver/library version mismatch",
	nvml.ERROR_IN_USE:                    "In use by another client",
	nvml.ERROR_MEMORY:                    "Insufficient Memory",
	nvml.ERROR_NO_DATA:                   "No data",
	nvml.ERROR_VGPU_ECC_NOT_SUPPORTED:    "vGPU ECC not supported",
	nvml.ERROR_INSUFFICIENT_RESOURCES:    "Insufficient Resources",
	nvml.ERROR_FREQ_NOT_SUPPORTED:        "Frequency Not Supported",
	nvml.ERROR_ARGUMENT_VERSION_MISMATCH: "Argument Version Mismatch",
	nvml.ERROR_DEPRECATED:                "Deprecated",
	nvml.ERROR_NOT_READY:                 "Not Ready",
	nvml.ERROR_GPU_NOT_FOUND:             "GPU Not Found",
	nvml.ERROR_INVALID_STATE:             "Invalid State",
	nvml.ERROR_UNKNOWN:                   "Unknown Error",
}

// Error returns e.g. "GPU is lost (NVML error 15)".
func (a answer) Error() string {
	words, ok := answerWords[nvml.Return(a)]
	if !ok {
		words = "an answer that NVML does not define"
	}
	return fmt.Sprintf("%s (NVML error %d)", words, int(a))
}
