package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// This file notes in a folder which scripts of the host a start owes: an agent that
// starts anew goes on from there. The shim has no part in it.

const (
	owedFile  = "epilog" // the epilog has to run after the end of the member
	faultFile = "fault"  // Fault: the epilog has failed
)

// Fault says how a script of the host failed.
type Fault struct {
	Version int    `json:"version"`
	Message string `json:"message"`
}

// ParseFault reads a fault.
func ParseFault(data []byte) (Fault, error) {
	v, err := decode[Fault](data, maxRecord)
	switch {
	case err != nil:
		return Fault{}, fmt.Errorf("fault: %w", err)
	case v.Version != version:
		return Fault{}, fmt.Errorf("fault: version %d, this program reads version %d", v.Version, version)
	case v.Message == "":
		return Fault{}, errors.New("fault: no message")
	}
	return v, nil
}

// OweEpilog notes durably that the epilog has to run after the end of the member.
func (f Folder) OweEpilog() error { return f.write(owedFile, struct{}{}) }

// OwesEpilog reports whether the epilog has to run.
func (f Folder) OwesEpilog() bool {
	_, err := os.Stat(f.path(owedFile))
	return err == nil
}

// SettleEpilog notes durably that the epilog has run; fault says how it failed, "" for not
// at all.
func (f Folder) SettleEpilog(fault string) error {
	if fault != "" {
		if err := f.write(faultFile, Fault{version, fault}); err != nil {
			return err
		}
	}
	if err := os.Remove(f.path(owedFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(string(f))
}

// Fault returns how the epilog failed; "" where it did not.
func (f Folder) Fault() string {
	v, err := read(f, faultFile, maxRecord, ParseFault)
	if err != nil {
		return ""
	}
	return v.Message
}
