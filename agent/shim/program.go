package shim

import (
	"os"
	"path/filepath"
)

// Name is the file name of the shim's own program.
const Name = "muster-shim"

// Program returns the program of the shims of an agent whose own program is at
// executable: muster-shim in the same folder. Where there is none, it is the agent's own
// program, which calls Become too and takes more memory.
func Program(executable string) string {
	own := filepath.Join(filepath.Dir(executable), Name)
	if info, err := os.Stat(own); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
		return own
	}
	return executable
}
