package container

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
)

// bundle makes the host's root file system that of a bundle, with a configuration as the
// container tool itself writes it, changed. The spec has neither a command nor a folder.
func (h *host) bundle(change func(config map[string]any)) shim.Spec {
	h.t.Helper()
	if out, err := exec.Command(h.image.Tool, "spec", "--bundle="+h.folder).CombinedOutput(); err != nil {
		h.t.Fatalf("crun spec: %v: %s", err, out)
	}
	path := filepath.Join(h.folder, "config.json")
	data, err := os.ReadFile(path)
	if err != nil {
		h.t.Fatal(err)
	}
	config := map[string]any{}
	if err := json.Unmarshal(data, &config); err != nil {
		h.t.Fatal(err)
	}
	config["root"].(map[string]any)["path"] = "tiny"
	change(config)
	if data, err = json.Marshal(config); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		h.t.Fatal(err)
	}
	s := h.spec("")
	s.Args, s.Dir, s.Env = nil, "", nil
	s.Container.Rootfs, s.Container.Bundle = "", h.folder
	s.Container.Env = []string{"PATH=/nowhere", "LANG=C", "HOME=/"}
	return s
}

// process sets fields of the process of a configuration.
func process(config map[string]any, fields map[string]any) {
	for name, value := range fields {
		config["process"].(map[string]any)[name] = value
	}
}

func TestABundleRunsAsItsConfigurationSays(t *testing.T) {
	h := newHost(t)
	s := h.bundle(func(config map[string]any) {
		process(config, map[string]any{
			"args": []string{"sh", "-c", "pwd; echo $A $B $LANG $HOME; echo rank $MUSTER_RANK; id -u; grep CapEff /proc/self/status; echo kept > /run/file && cat /run/file; touch /etc/new; exit 7"},
			"env":  []string{"PATH=/bin", "A=of the bundle", "B=of the bundle", "HOME=/etc", "MUSTER_RANK=9"}, "cwd": "/etc",
		})
		config["mounts"] = append(config["mounts"].([]any), map[string]any{"destination": "/run", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "size=64k", "mode=1777"}})
	})
	s.Env = []string{"B=of the job"}
	h.attach(s)
	e := h.ends()
	want := "/etc\nof the bundle of the job C /etc\nrank\n" + memberID + "\nCapEff:\t0000000000000000\nkept\ntouch: /etc/new: Read-only file system\n"
	if got := h.log(); e.Code != 7 || got != want {
		t.Errorf("end %+v, output %q, want code 7 and %q", e, got, want)
	}
}

func TestAJobWinsOverTheConfigurationOfItsBundle(t *testing.T) {
	h := newHost(t)
	s := h.bundle(func(config map[string]any) {
		process(config, map[string]any{"args": []string{"sh", "-c", "exit 9"}, "env": []string{"PATH=/bin", "A=set"}, "cwd": "/etc"})
	})
	s.Args, s.Dir = []string{"sh", "-c", "pwd; exec sleep 1000"}, "/mnt"
	h.attach(s)
	h.prints("/mnt\n")
	session := h.session(grant.Exec{Args: shell("pwd; echo $A; cat /etc/inside")})
	if out, exit := hears(t, session, ""); out != "/mnt\nset\nthe image\n" || exit.Code != 0 {
		t.Errorf("a further command prints %q and ends with %+v", out, exit)
	}
}

func TestABundleThatMayBeWritten(t *testing.T) {
	h := newHost(t)
	if err := os.Chown(filepath.Join(h.folder, "tiny", "mnt"), int(member.UID), int(member.GID)); err != nil {
		t.Fatal(err)
	}
	h.attach(h.bundle(func(config map[string]any) {
		delete(config["root"].(map[string]any), "readonly")
		process(config, map[string]any{"args": []string{"sh", "-c", "echo kept > /mnt/file; touch /etc/new"}, "env": []string{"PATH=/bin"}})
	}))
	if e := h.ends(); h.log() != "touch: /etc/new: Permission denied\n" {
		t.Errorf("end %+v, output %q", e, h.log())
	}
	if data, err := os.ReadFile(filepath.Join(h.folder, "tiny", "mnt", "file")); err != nil || string(data) != "kept\n" {
		t.Errorf("the bundle has %q (%v), want what the command has written", data, err)
	}
}

func TestABundleThatIsRefused(t *testing.T) {
	nothing := func(map[string]any) {}
	for name, c := range map[string]struct {
		change func(config map[string]any)
		also   func(h *host, s *shim.Spec)
		want   string
	}{
		"a hook": {func(config map[string]any) {
			config["hooks"] = map[string]any{"createRuntime": []any{map[string]any{"path": "/bin/true"}}}
		}, nil, `hooks."createRuntime": 1 programs of the host`},
		"a folder of the host": {func(config map[string]any) {
			config["mounts"] = []any{map[string]any{"destination": "/mnt", "type": "bind", "source": "/etc", "options": []string{"rbind"}}}
		}, nil, `mounts[0]: "bind" at "/mnt"`},
		"no command": {func(config map[string]any) { delete(config["process"].(map[string]any), "args") }, nil, "config.json has no process.args, and the job has no command"},
		"a root file system elsewhere": {func(config map[string]any) { config["root"].(map[string]any)["path"] = "../.." }, nil,
			"it lies in none of the folders that this host permits"},
		"a bundle elsewhere": {nothing, func(h *host, s *shim.Spec) { s.Container.Within = []string{h.folder + "/tiny"} }, "it lies in none of the folders that this host permits"},
		"no configuration":   {nothing, func(h *host, s *shim.Spec) { remove(h.t, h.folder+"/config.json") }, "config.json: no such file"},
		"a pipe":             {nothing, func(h *host, s *shim.Spec) { pipe(h.t, h.folder+"/config.json") }, "config.json is no regular file"},
		"a secret of root's": {nothing, func(h *host, s *shim.Spec) { secret(h.t, h.folder+"/config.json") }, "config.json: permission denied"},
		"a link to a secret": {nothing, func(h *host, s *shim.Spec) { linkToSecret(h, h.folder+"/config.json") }, "config.json: permission denied"},
		"a bundle as rootfs": {nothing, func(h *host, s *shim.Spec) {
			s.Args, s.Container.Rootfs, s.Container.Bundle = []string{"true"}, h.folder, ""
		}, "it has no folder /proc; it has a config.json: a bundle is named by bundle in place of rootfs"},
		"a very long message": {func(config map[string]any) { config["ociVersion"] = strings.Repeat("9", 1<<18) }, nil, `ociVersion: "99`},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			s := h.bundle(c.change)
			if c.also != nil {
				c.also(h, &s)
			}
			h.attach(s)
			if e := h.ends(); e.Code != 126 || e.Reason != string(shim.NotStarted) || !strings.Contains(e.Message, c.want) {
				t.Errorf("end %+v, want code 126 and %q", e, c.want)
			}
		})
	}
}

func remove(t testing.TB, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// pipe makes a pipe that nobody writes to, in place of a file.
func pipe(t testing.TB, path string) {
	t.Helper()
	remove(t, path)
	if err := unix.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
}

// secret makes a file that root alone may read.
func secret(t testing.TB, path string) {
	t.Helper()
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

func linkToSecret(h *host, path string) {
	h.t.Helper()
	to := filepath.Join(h.folder, "secret")
	if err := os.Rename(path, to); err != nil {
		h.t.Fatal(err)
	}
	secret(h.t, to)
	if err := os.Symlink(to, path); err != nil {
		h.t.Fatal(err)
	}
}
