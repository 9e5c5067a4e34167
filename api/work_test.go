package api

import (
	"strings"
	"testing"

	"github.com/musterd/muster/resource"
)

func TestWorkOfAJob(t *testing.T) {
	long := strings.Repeat("x", MaxWorkBytes)
	for name, c := range map[string]struct {
		spec AllocationSpec
		want string // part of the message; "" is valid
	}{
		"no work":                       {AllocationSpec{}, ""},
		"a command":                     {AllocationSpec{Command: []string{"true"}}, ""},
		"all of it":                     {AllocationSpec{Command: []string{"sh", "-c"}, Args: []string{"", "b"}, Env: []EnvVar{{"A", "x y"}, {"_b2", ""}}, WorkingDir: "/tmp"}, ""},
		"arguments alone":               {AllocationSpec{Args: []string{"a"}}, "s.args: 1 arguments without a command: set s.command"},
		"variables alone":               {AllocationSpec{Env: []EnvVar{{"A", ""}}}, "s.env: 1 variables without a command"},
		"a folder alone":                {AllocationSpec{WorkingDir: "/"}, "s.workingDir: \"/\" without a command"},
		"an empty program":              {AllocationSpec{Command: []string{""}}, "s.command[0]: the program is empty"},
		"a zero byte":                   {AllocationSpec{Command: []string{"a", "b\x00"}}, "s.command[1]: a zero byte"},
		"a relative folder":             {AllocationSpec{Command: []string{"a"}, WorkingDir: "tmp"}, "s.workingDir: \"tmp\": want an absolute path"},
		"a variable with a blank":       {AllocationSpec{Command: []string{"a"}, Env: []EnvVar{{"A B", ""}}}, "s.env[0].name: \"A B\" is not a name"},
		"a variable with a digit first": {AllocationSpec{Command: []string{"a"}, Env: []EnvVar{{"1A", ""}}}, "s.env[0].name: \"1A\" is not a name"},
		"a variable without a name":     {AllocationSpec{Command: []string{"a"}, Env: []EnvVar{{"", "b"}}}, "s.env[0].name: 0 bytes, want 1..256"},
		"the devices":                   {AllocationSpec{Command: []string{"a"}, Env: []EnvVar{{"CUDA_VISIBLE_DEVICES", "0"}}}, "s.env[0].name: \"CUDA_VISIBLE_DEVICES\" is set by Muster"},
		"a variable of Muster":          {AllocationSpec{Command: []string{"a"}, Env: []EnvVar{{"MUSTER_RANK", "0"}}}, "s.env[0].name: \"MUSTER_RANK\" is set by Muster"},
		"a variable twice":              {AllocationSpec{Command: []string{"a"}, Env: []EnvVar{{"A", "1"}, {"A", "2"}}}, "s.env[1].name: \"A\" is env[0] too"},
		"a root file system alone":      {AllocationSpec{Rootfs: "/srv/x"}, "s.rootfs: \"/srv/x\" without a command: set s.command"},
		"a relative root file system":   {AllocationSpec{Command: []string{"a"}, Rootfs: "srv"}, "s.rootfs: \"srv\": want an absolute path"},
		"a way out of a folder":         {AllocationSpec{Command: []string{"a"}, Rootfs: "/srv/../etc"}, "s.rootfs: \"/srv/../etc\": want an absolute path"},
		"the root file system /":        {AllocationSpec{Command: []string{"a"}, Rootfs: "/"}, ""},
		"a bundle alone":                {AllocationSpec{Bundle: "/srv/x"}, ""},
		"a bundle and a command":        {AllocationSpec{Bundle: "/srv/x", Command: []string{"a"}, Args: []string{"b"}}, ""},
		"a relative bundle":             {AllocationSpec{Bundle: "srv"}, "s.bundle: \"srv\": want an absolute path"},
		"arguments for a bundle":        {AllocationSpec{Bundle: "/srv/x", Args: []string{"b"}}, "s.args: 1 arguments without a command: set s.command, in place of the whole command of the bundle"},
		"a bundle and a rootfs":         {AllocationSpec{Bundle: "/srv/x", Rootfs: "/srv/y", Command: []string{"a"}}, "s.bundle: \"/srv/x\", and rootfs is \"/srv/y\""},
		"a mount":                       {AllocationSpec{Bundle: "/srv/x", Mounts: []Mount{{"/srv/data", "/mnt", true}, {Source: "/home/ada"}}}, ""},
		"a mount alone":                 {AllocationSpec{Mounts: []Mount{{Source: "/a"}}}, "s.mounts: 1 mounts without a command"},
		"a mount of a plain command":    {AllocationSpec{Command: []string{"a"}, Mounts: []Mount{{Source: "/a"}}}, "s.mounts: 1 mounts without a root file system"},
		"a mount of nothing":            {AllocationSpec{Bundle: "/srv/x", Mounts: []Mount{{Target: "/a"}}}, "s.mounts[0].source: required"},
		"a relative source":             {AllocationSpec{Bundle: "/srv/x", Mounts: []Mount{{Source: "a"}}}, "s.mounts[0].source: \"a\": want an absolute path"},
		"a source with dots":            {AllocationSpec{Bundle: "/srv/x", Mounts: []Mount{{Source: "/a/../b"}}}, "s.mounts[0].source: \"/a/../b\": want an absolute path"},
		"a target with dots":            {AllocationSpec{Bundle: "/srv/x", Mounts: []Mount{{Source: "/a", Target: "/b/."}}}, "s.mounts[0].target: \"/b/.\": want an absolute path"},
		"a zero byte in a source":       {AllocationSpec{Bundle: "/srv/x", Mounts: []Mount{{Source: "/a\x00", Target: "/b"}}}, "s.mounts[0].source: a zero byte"},
		"a mount of all":                {AllocationSpec{Bundle: "/srv/x", Mounts: []Mount{{Source: "/"}}}, "s.mounts[0].target: \"/\": want another place"},
		"a mount in /dev":               {AllocationSpec{Bundle: "/srv/x", Mounts: []Mount{{Source: "/a", Target: "/dev/shm"}}}, "s.mounts[0].target: \"/dev/shm\": want another place"},
		"two mounts in one place":       {AllocationSpec{Bundle: "/srv/x", Mounts: []Mount{{Source: "/a"}, {Source: "/b", Target: "/a"}}}, "s.mounts[1].target: \"/a\" is that of mounts[0] too"},
		"too long a source":             {AllocationSpec{Bundle: "/srv/x", Mounts: []Mount{{Source: "/" + long}}}, "at most 1024 bytes"},
		"too many mounts":               {AllocationSpec{Bundle: "/srv/x", Mounts: make([]Mount, MaxMounts+1)}, "s.mounts"},
		"an input alone":                {AllocationSpec{Stdin: true}, "s.stdin: true without a command: set s.command"},
		"a terminal alone":              {AllocationSpec{TTY: true}, "s.tty: true without a command: set s.command"},
		"too long":                      {AllocationSpec{Command: []string{"a", long}}, "65537 bytes of command, args and env together, at most 65536"},
		"too many":                      {AllocationSpec{Command: []string{"a"}, Args: make([]string, 256)}, "257 entries of command, args and env together, at most 256"},
	} {
		t.Run(name, func(t *testing.T) {
			status := checkWork("s", &c.spec)
			if c.want == "" && status != nil || c.want != "" && (status == nil || !strings.Contains(status.Message, c.want)) {
				t.Errorf("status %v, want %q", status, c.want)
			}
		})
	}
}

func TestAnInputIsForOneMember(t *testing.T) {
	for members, want := range map[int32]string{1: "", 2: "spec.template.spec.stdin: true for 2 members: a job with a standard input has one"} {
		j := Job{APIVersion: APIVersion, Kind: KindJob, Metadata: ObjectMeta{Name: "j"}}
		s := &j.Spec.Template.Spec
		j.Spec.Parallelism, s.Command, s.Stdin, s.TTY = &members, []string{"sh"}, true, true
		s.Resources.Requests = map[resource.Name]string{resource.CPU: "1"}
		got := ""
		if status := j.Validate(); status != nil {
			got = status.Message
		}
		if !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%d members: %q, want %q", members, got, want)
		}
	}
}
