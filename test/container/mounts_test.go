package container

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/agent/shim"
)

// dataFolder makes a folder of a user with a file.
func (h *host) dataFolder(name string, owner int, mode os.FileMode) string {
	h.t.Helper()
	path := filepath.Join(h.folder, name)
	if err := os.Mkdir(path, 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "file"), []byte("of "+name+"\n"), 0o644); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Chown(path, owner, owner); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// with adds mounts to a spec, of the host's folder.
func (h *host) with(s shim.Spec, mounts ...shim.Data) shim.Spec {
	s.Container.Data, s.Container.DataWithin = mounts, []string{h.folder}
	return s
}

func TestACommandSeesTheMountsOfItsJob(t *testing.T) {
	h := newHost(t)
	own, others := h.dataFolder("own", int(member.UID), 0o700), h.dataFolder("others", 0, 0o755)
	deep := filepath.Join(own, "deep")
	if err := os.Mkdir(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(deep, int(member.UID), int(member.GID)); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(h.folder, "link")
	if err := os.Symlink("others", link); err != nil {
		t.Fatal(err)
	}
	h.attach(h.with(h.spec("cat /mnt/file /tmp/others/file /tmp/file; echo new > /mnt/new; echo no > /tmp/others/new; echo no > /tmp/ro/new; touch /mnt/deep/new; ls /mnt/deep; exit 3"),
		shim.Data{Source: filepath.Join(others, "file"), Target: "/mnt/deep/file"}, // in a mount that stands behind it
		shim.Data{Source: own, Target: "/mnt"},
		shim.Data{Source: link, Target: "/tmp/others"},
		shim.Data{Source: own, Target: "/tmp/ro", ReadOnly: true},
		shim.Data{Source: filepath.Join(own, "file"), Target: "/tmp/file"},
	))
	e := h.ends()
	want := "of own\nof others\nof own\nsh: can't create /tmp/others/new: Permission denied\nsh: can't create /tmp/ro/new: Read-only file system\nfile\nnew\n"
	if got := h.log(); e.Code != 3 || got != want {
		t.Fatalf("end %+v, output %q, want code 3 and %q", e, got, want)
	}
	info, err := os.Stat(filepath.Join(own, "new"))
	if err != nil {
		t.Fatal(err)
	}
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != member.UID || stat.Gid != member.GID {
		t.Errorf("the new file belongs to %d:%d, want %d", stat.Uid, stat.Gid, member.UID)
	}
}

func TestAReadOnlyMountHasNothingThatCanBeWritten(t *testing.T) {
	h := newHost(t)
	own := h.dataFolder("own", int(member.UID), 0o755)
	below := filepath.Join(own, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", below, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=1777"); err != nil {
		t.Skip("not permitted here: ", err)
	}
	defer func() {
		if err := unix.Unmount(below, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	h.attach(h.with(h.spec("echo no > /mnt/below/new; echo yes > /tmp/own/below/new; cat /mnt/below/new"),
		shim.Data{Source: own, Target: "/mnt", ReadOnly: true}, shim.Data{Source: own, Target: "/tmp/own"}))
	want := "sh: can't create /mnt/below/new: Read-only file system\nyes\n"
	if e := h.ends(); e.Code != 0 || h.log() != want {
		t.Errorf("end %+v, output %q, want %q", e, h.log(), want)
	}
}

func TestAMountThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(h *host, s *shim.Spec, d *shim.Data)
		want   string
	}{
		"a folder that the host does not permit": {func(_ *host, s *shim.Spec, _ *shim.Data) { s.Container.DataWithin = []string{"/srv"} }, "it lies in none of the folders that this host permits: /srv"},
		"a link to a folder elsewhere": {func(h *host, _ *shim.Spec, d *shim.Data) {
			d.Source = filepath.Join(h.folder, "way")
			if err := os.Symlink("/etc", d.Source); err != nil {
				h.t.Fatal(err)
			}
		}, "it lies in none of the folders that this host permits"},
		"a folder that is not there": {func(h *host, _ *shim.Spec, d *shim.Data) { d.Source = h.folder + "/none" }, "no such file"},
		"a folder in one that the user may not enter": {func(h *host, _ *shim.Spec, d *shim.Data) {
			d.Source = filepath.Join(h.dataFolder("private", 0, 0o700), "file")
		}, "permission denied"},
		"a place that the root file system has not": {func(_ *host, _ *shim.Spec, d *shim.Data) { d.Target = "/data" }, "the root file system has no /data; make it there, or mount at a place in /tmp"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			d := shim.Data{Source: h.dataFolder("own", int(member.UID), 0o755), Target: "/mnt"}
			s := h.with(h.spec("exit 0"))
			c.change(h, &s, &d)
			s.Container.Data = []shim.Data{d}
			h.attach(s)
			e := h.ends()
			if e.Code != 126 || e.Reason != string(shim.NotStarted) || !strings.Contains(e.Message, "the mount of "+d.Source) || !strings.Contains(e.Message, c.want) {
				t.Errorf("end %+v, want code 126 and %q", e, c.want)
			}
			if entries, err := os.ReadDir(filepath.Join(h.folder, "tiny")); err != nil || len(entries) != len(imageFolders) {
				t.Errorf("the root file system has %v (%v) now, want %v", entries, err, imageFolders)
			}
		})
	}
}
