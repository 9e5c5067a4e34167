package shim

import (
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The thread that opens a terminal needs no right to change owners.
func TestATerminalBelongsToTheUserOfItsCommand(t *testing.T) {
	user := &User{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	if os.Geteuid() == 0 {
		user = &User{UID: 65534, GID: 65534}
	}
	person, command, err := openTerminal(user, Window{Rows: 3, Columns: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	defer command.Close()
	info, err := command.Stat()
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if diff := cmp.Diff(user.UID, owner); diff != "" {
		t.Errorf("owner of the command's end (-want +got):\n%s", diff)
	}
	if info.Mode().Perm()&0o007 != 0 {
		t.Errorf("mode %v: others may use the terminal", info.Mode())
	}
}
