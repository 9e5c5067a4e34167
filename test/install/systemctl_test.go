package install_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stateVariable names the folder of the pretended systemd in the environment.
const stateVariable = "MUSTER_TEST_SYSTEMD"

const unitFolder = "/etc/systemd/system"

// systemctl is the part of systemctl that docs/install.md uses: daemon-reload,
// which has systemd-analyze judge the units; enable --now UNIT, which starts a
// unit's program and returns once it is ready; and status UNIT…, which fails unless
// all run. It returns the exit code.
func systemctl(args []string) int {
	err := errors.New("want daemon-reload, enable --now UNIT or status UNIT…")
	switch {
	case len(args) == 1 && args[0] == "daemon-reload":
		err = verify()
	case len(args) == 3 && args[0] == "enable" && args[1] == "--now":
		err = enable(args[2])
	case len(args) > 1 && args[0] == "status":
		err = status(args[1:])
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "systemctl %q: %v\n", args, err)
		return 1
	}
	return 0
}

// verify has systemd's own verifier look at each installed unit of Muster, with the
// installed programs.
func verify() error {
	verifier, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return nil //nolint:nilerr // test/systemd says that it is missing
	}
	units, err := filepath.Glob(filepath.Join(unitFolder, "muster-*.service"))
	if err != nil || len(units) != 2 {
		return fmt.Errorf("the units %q, %v: want both", units, err)
	}
	out, err := exec.Command(verifier, append([]string{"verify", "--man=no", "--recursive-errors=no"}, units...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		return fmt.Errorf("systemd-analyze: %w\n%s", err, out)
	}
	return nil
}

// enable starts a unit's program as systemd would and waits for READY=1.
func enable(unit string) error {
	text, err := os.ReadFile(filepath.Join(unitFolder, unit+".service"))
	if err != nil {
		return err
	}
	setting := func(key string) string {
		for line := range strings.Lines(string(text)) {
			if value, is := strings.CutPrefix(strings.TrimSpace(line), key+"="); is {
				return value
			}
		}
		return ""
	}
	user, group := setting("User"), setting("Group")
	data := filepath.Join("/var/lib", setting("StateDirectory"))
	if out, err := exec.Command("install", "-d", "-m", setting("StateDirectoryMode"), "-o", user, "-g", group, data).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", data, err, out)
	}
	state := os.Getenv(stateVariable)
	address := &net.UnixAddr{Name: filepath.Join(state, unit+".notify"), Net: "unixgram"}
	socket, err := net.ListenUnixgram(address.Net, address)
	if err != nil {
		return err
	}
	if err := os.Chmod(address.Name, 0o777); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(state, unit+".log"))
	if err != nil {
		return err
	}
	groups := "--clear-groups"
	if more := setting("SupplementaryGroups"); more != "" {
		groups = "--groups=" + more
	}
	run := append([]string{"--reuid=" + user, "--regid=" + group, groups, "--bounding-set=-all", "--no-new-privs", "--"}, strings.Fields(setting("ExecStart"))...)
	program := exec.Command("setpriv", run...)
	program.Stdout, program.Stderr, program.Env = log, log, []string{"NOTIFY_SOCKET=" + address.Name, "PATH=/usr/bin:/bin"}
	program.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := program.Start(); err != nil {
		return err
	}
	pid := fmt.Sprint(program.Process.Pid)
	if err := os.WriteFile(filepath.Join(state, unit+".pid"), []byte(pid), 0o600); err != nil {
		return err
	}
	return ready(socket, unit)
}

// ready waits for READY=1.
func ready(socket *net.UnixConn, unit string) error {
	if err := socket.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	for buffer := make([]byte, 4096); ; {
		n, err := socket.Read(buffer)
		if err != nil {
			return fmt.Errorf("%s does not become ready: %w\n%s", unit, err, logOf(unit))
		}
		if bytes.Equal(bytes.TrimSpace(buffer[:n]), []byte("READY=1")) {
			return nil
		}
	}
}

func logOf(unit string) string {
	text, err := os.ReadFile(filepath.Join(os.Getenv(stateVariable), unit+".log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// status fails unless the programs of all units run.
func status(units []string) error {
	for _, unit := range units {
		pid, err := os.ReadFile(filepath.Join(os.Getenv(stateVariable), unit+".pid"))
		if err != nil {
			return err
		}
		stat, err := os.ReadFile(filepath.Join("/proc", string(pid), "stat"))
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return fmt.Errorf("%s has ended:\n%s", unit, logOf(unit))
		}
		fmt.Printf("%s: active (running)\n", unit)
	}
	return nil
}
