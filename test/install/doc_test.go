// Package install_test runs the commands of docs/install.md as they stand, with the
// shipped configuration and the shipped units, in namespaces of their own: /etc and
// /usr/local/bin and share are overlays, /var/lib is in memory, all vanish with the test, and
// the network is a loopback interface without other programs, so that every default
// port is free. The programs are this tree's. systemctl is this test: it starts the
// programs of the installed units as their users and waits for READY=1.
package install_test

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "systemctl" {
		os.Exit(systemctl(os.Args[1:]))
	}
	os.Exit(m.Run())
}
