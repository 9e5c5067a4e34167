package rpc

import (
	"reflect"
	"strings"
	"testing"

	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

func TestTheContainerOfAStart(t *testing.T) {
	mount := func(source, target string) []*musterv1.StartMount {
		return []*musterv1.StartMount{{Source: source, Target: target, ReadOnly: true}}
	}
	for name, c := range map[string]struct {
		start *musterv1.Start
		want  string // part of the error; "" is valid
	}{
		"a bundle without arguments":    {&musterv1.Start{Bundle: "/srv/b", Mounts: mount("/srv/data", "/mnt")}, ""},
		"a root file system":            {&musterv1.Start{Args: []string{"sh"}, Rootfs: "/srv/r", Mounts: mount("/srv/data", "/mnt")}, ""},
		"no command":                    {&musterv1.Start{Rootfs: "/srv/r"}, "start.args: 0 arguments, want a command"},
		"an empty program":              {&musterv1.Start{Args: []string{""}, Bundle: "/srv/b"}, "start.args"},
		"both":                          {&musterv1.Start{Args: []string{"sh"}, Rootfs: "/srv/r", Bundle: "/srv/b"}, `start.bundle: "/srv/b", and rootfs is "/srv/r"`},
		"a relative bundle":             {&musterv1.Start{Bundle: "b"}, `start.bundle: "b" is no absolute path`},
		"a mount of the host's files":   {&musterv1.Start{Args: []string{"sh"}, Mounts: mount("/a", "/b")}, "start.mounts: 1 mounts without a root file system"},
		"a source with dots":            {&musterv1.Start{Bundle: "/srv/b", Mounts: mount("/a/../b", "/b")}, `start.mounts[0]: "/a/../b" at "/b"`},
		"a mount without a target":      {&musterv1.Start{Bundle: "/srv/b", Mounts: mount("/a", "")}, `start.mounts[0]: "/a" at ""`},
		"a zero byte in a mount's path": {&musterv1.Start{Bundle: "/srv/b", Mounts: mount("/a\x00", "/b")}, "start.mounts[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.start
			m.Tx, m.Members = "tx", []*musterv1.StartMember{{}}
			s, err := startOf(m)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := []grant.Mount{{Source: "/srv/data", Target: "/mnt", ReadOnly: true}}; s.Bundle != m.Bundle || s.Rootfs != m.Rootfs || !reflect.DeepEqual(s.Mounts, want) {
				t.Errorf("read as %+v", s)
			}
		})
	}
}
