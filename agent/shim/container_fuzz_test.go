package shim

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What is taken of a bundle's configuration is a command, an environment, a folder and file
// systems in memory, whatever the configuration has.
func FuzzBundle(f *testing.F) {
	f.Add([]byte(`{"ociVersion":"1.0.2","root":{"path":"rootfs","readonly":true},"process":{"args":["sh","-c","true"],"env":["PATH=/bin","MUSTER_RANK=7"],"cwd":"/opt","user":{"uid":0,"gid":0},"capabilities":{"bounding":["CAP_SYS_ADMIN"]}},"mounts":[{"destination":"/proc","type":"proc","source":"proc"},{"destination":"/run","type":"tmpfs","source":"tmpfs","options":["nosuid","size=64k","mode=755","uid=0"]}],"hooks":{},"linux":{"namespaces":[{"type":"pid"}]}}`))
	f.Add([]byte(`{"ociVersion":"1.0.0","root":{"path":"/srv"},"mounts":[{"destination":"/data","type":"bind","source":"/etc","options":["rbind"]}]}`))
	f.Add([]byte(`{"ociVersion":"1.0.0","root":{"path":"r"},"hooks":{"prestart":[{"path":"/bin/true"}]}}`))
	f.Add([]byte(`{"ociVersion":"1.0.0","root":{"path":"r"},"mounts":[{"destination":"/run/../dev/x","type":"tmpfs"},{"destination":"//srv/","type":"tmpfs","options":["size=5,exec"]}]}`))
	f.Add([]byte(`{"ociVersion":"2","root":{"path":"r"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := parseBundle(data)
		if err != nil {
			return
		}
		if len(data) > maxBundle || b.root == "" || strings.ContainsRune(b.root+b.dir, 0) || b.dir != "" && !filepath.IsAbs(b.dir) || len(b.args) > 0 && b.args[0] == "" {
			t.Errorf("%q is taken: %+v", data, b)
		}
		for _, v := range b.env {
			if name, _, ok := strings.Cut(v, "="); !ok || name == "" || isOfMuster(name) || strings.ContainsRune(v, 0) {
				t.Errorf("the variable %q is taken", v)
			}
		}
		for _, m := range b.mounts {
			of := func(own string) bool { return isBelow(m.Destination, own) }
			if m.Type != "tmpfs" || m.Source != "tmpfs" || m.Destination == "/" || !filepath.IsAbs(m.Destination) || filepath.Clean(m.Destination) != m.Destination || slices.ContainsFunc(ownPlaces, of) || strings.ContainsAny(strings.Join(m.Options, ""), ", ") {
				t.Errorf("the mount %+v is taken", m)
			}
		}
	})
}

func TestBundlesThatAskForMore(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":                   {`root`, "invalid character"},
		"data after it":             {`{} {}`, "after top-level value"},
		"no version":                {`{"root":{"path":"r"}}`, `ociVersion: "", want 1.x`},
		"no root file system":       {`{"ociVersion":"1.0.0"}`, "root.path: want the folder of the root file system"},
		"a bundle for Windows":      {`{"ociVersion":"1.0.0","root":{"path":"r"},"windows":{}}`, "windows: want a bundle for Linux alone"},
		"a program of the host":     {`{"ociVersion":"1.0.0","root":{"path":"r"},"hooks":{"prestart":[{"path":"/a"}]}}`, `hooks."prestart": 1 programs of the host`},
		"a folder of the host":      {`{"ociVersion":"1.0.0","root":{"path":"r"},"mounts":[{"destination":"/data","type":"bind","source":"/etc"}]}`, `mounts[0]: "bind" at "/data": a bundle mounts tmpfs alone`},
		"a mount over all":          {`{"ociVersion":"1.0.0","root":{"path":"r"},"mounts":[{"destination":"/a/..","type":"tmpfs"}]}`, `mounts[0]: destination "/a/..": want an absolute path below /`},
		"a mode without digits":     {`{"ociVersion":"1.0.0","root":{"path":"r"},"mounts":[{"destination":"/a","type":"tmpfs","options":["mode="]}]}`, `mounts[0]: option "mode=" of the tmpfs at "/a" is not taken`},
		"a mode that is decimal":    {`{"ociVersion":"1.0.0","root":{"path":"r"},"mounts":[{"destination":"/a","type":"tmpfs","options":["mode=789"]}]}`, `option "mode=789"`},
		"a size with an option":     {`{"ociVersion":"1.0.0","root":{"path":"r"},"mounts":[{"destination":"/a","type":"tmpfs","options":["size=1m,exec"]}]}`, `option "size=1m,exec"`},
		"a flag with a value":       {`{"ociVersion":"1.0.0","root":{"path":"r"},"mounts":[{"destination":"/a","type":"tmpfs","options":["exec="]}]}`, `option "exec="`},
		"an option of crun":         {`{"ociVersion":"1.0.0","root":{"path":"r"},"mounts":[{"destination":"/a","type":"tmpfs","options":["tmpcopyup"]}]}`, `mounts[0]: option "tmpcopyup" of the tmpfs at "/a" is not taken`},
		"a variable without a name": {`{"ociVersion":"1.0.0","root":{"path":"r"},"process":{"env":["=a"]}}`, `process.env[0]: "=a": want NAME=VALUE`},
		"a relative folder":         {`{"ociVersion":"1.0.0","root":{"path":"r"},"process":{"cwd":"a"}}`, `process.cwd: "a": want an absolute path`},
		"an empty program":          {`{"ociVersion":"1.0.0","root":{"path":"r"},"process":{"args":[""]}}`, "process.args[0]: the program is empty"},
		"too large":                 {strings.Repeat(" ", maxBundle+1), "more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseBundle([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
