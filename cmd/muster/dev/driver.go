package dev

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// driverProgram is muster built with cgo, so that it can load the NVIDIA
// driver's library. It lies beside muster; make build makes both.
const driverProgram = "muster-dev"

// becomeDriver replaces this process, which was built without cgo, by the
// program that finds the GPUs of this host, with the same arguments. Where that
// is not there it returns nil: the cluster has no GPUs then, and says why.
func becomeDriver(executable func() (string, error), exec func(path string, args, env []string) error, env []string) error {
	own, err := executable()
	if err != nil {
		return fmt.Errorf("find %s beside this program: %w", driverProgram, err)
	}
	path := filepath.Join(filepath.Dir(own), driverProgram)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := exec(path, os.Args, env); err != nil { // else it does not return
		return fmt.Errorf("start %s: %w", path, err)
	}
	return nil
}
