package programs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/musterd/muster/test/programs"
)

// TestTheProgramsOfAHostPassNoDescriptorOn starts each program with descriptor 9 open: the
// programs started there must not have the descriptor.
func TestTheProgramsOfAHostPassNoDescriptorOn(t *testing.T) {
	dir := t.TempDir()
	names := []string{"muster-agent", "muster-launch"}
	if err := programs.Build(dir, names...); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			config := filepath.Join(t.TempDir(), "config") // the program waits for a writer of this file
			if err := syscall.Mkfifo(config, 0o600); err != nil {
				t.Fatal(err)
			}
			secret, err := os.CreateTemp(t.TempDir(), "secret")
			if err != nil {
				t.Fatal(err)
			}
			defer secret.Close()
			command := exec.Command(filepath.Join(dir, name), "--config", config)
			for range 7 { // descriptors 3 to 9
				command.ExtraFiles = append(command.ExtraFiles, secret)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = command.Wait() }() // it ends by its configuration, which says nothing
			defer func() { _ = command.Process.Kill() }()
			writer, err := os.OpenFile(config, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			for _, n := range []string{"3", "9"} {
				info, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(command.Process.Pid), "fdinfo", n))
				if err != nil {
					t.Fatalf("descriptor %s: %v; does the program close it?", n, err)
				}
				_, flags, _ := strings.Cut(string(info), "flags:\t")
				flags, _, _ = strings.Cut(flags, "\n")
				if set, err := strconv.ParseInt(flags, 8, 64); err != nil || set&syscall.O_CLOEXEC == 0 {
					t.Errorf("descriptor %s of %s has the flags %s, want close-on-exec among them", n, name, flags)
				}
			}
		})
	}
}
