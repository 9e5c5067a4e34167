package install_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/test/programs"
)

// patience bounds every wait; nothing here is timed.
const patience = time.Minute

// prelude makes the namespaces a fresh host: what the guide changes is an overlay
// or in memory, and the network has nobody else's ports. $1 is an empty folder.
const prelude = `
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mount -t tmpfs -o mode=0755 tmpfs /var/lib
for d in etc usr/local/bin usr/local/share; do
	mkdir -p "$1/$d/upper" "$1/$d/work"
	chmod 0755 "$1/$d/upper"
	mount -t overlay overlay -o "lowerdir=/$d,upperdir=$1/$d/upper,workdir=$1/$d/work" "/$d"
done
rm -rf /etc/muster
mount -t proc proc /proc
mkdir -m 0755 /var/lib/pretended-systemd
ip link set lo up
`

// healthy waits, as a person would, until the agent says that it is part of the
// cluster: within 60 s.
const healthy = `
for i in $(seq 300); do
	[ "$(curl -s http://127.0.0.1:8473/healthz)" = ok ] && break
	sleep 0.2
done
echo "healthz after the start: $(curl -s http://127.0.0.1:8473/healthz)"
`

func TestTheGuideBringsAClusterUp(t *testing.T) {
	if why := missing(); why != "" {
		t.Skipf("not permitted here: %s", why)
	}
	root, err := programs.Root()
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile(filepath.Join(root, "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	repository := checkout(t, root)
	tools := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(tools, "systemctl")); err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	fmt.Fprintf(&script, "%s\nexport %s=/var/lib/pretended-systemd\nset -x\n", prelude, stateVariable)
	for _, section := range []string{"1. Programs and user", "2. Tokens and configuration", "3. Units"} {
		script.WriteString(commands(t, string(guide), section))
	}
	script.WriteString(healthy + commands(t, string(guide), "4. Checking") + "muster get nodes -o wide\ncat $" + stateVariable + "/*.log\n")
	run := exec.Command("sh", "-c", script.String(), "sh", t.TempDir())
	run.Dir = repository
	run.Env = []string{"PATH=" + tools + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:" + serfFolder(t, root), "HOME=" + t.TempDir()}
	run.SysProcAttr = namespaces()
	out, err := run.CombinedOutput()
	text := string(out)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	hostname = strings.ToLower(hostname)
	for what, want := range map[string]string{
		"the agent is part of the cluster": `(?m)^healthz after the start: ok$`,
		"the node is Ready":                `(?m)^` + regexp.QuoteMeta(hostname) + ` +Ready `,
		"the example runs":                 `(?m)^cpu +Running`,
		"the ring has the agent":           `(?m)^` + regexp.QuoteMeta(hostname) + ` .*alive .*role=agent`,
		"the ring has the coordinator":     `(?m)^coordinator_` + regexp.QuoteMeta(hostname) + ` .*alive .*role=coordinator`,
		"metrics are served":               `(?m)^muster_leader 1$`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%s: no line %s", what, want)
		}
	}
	for _, line := range regexp.MustCompile(`(?m)^time=.* level=(WARN|ERROR) .*$`).FindAllString(text, -1) {
		// The first is about this machine; the pretended systemd listens until READY=1; etcd
		// says the last where its own first change is not applied as its timer ends, and
		// campaigns at the next one.
		if !strings.Contains(line, "msg=host_is_odd") && !strings.Contains(line, "msg=sd_notify_failed") && !strings.Contains(line, "pending configuration changes to apply") {
			t.Errorf("a fresh installation warns: %s", line)
		}
	}
	if t.Failed() || testing.Verbose() {
		t.Log(text)
	}
}

// namespaces are those of a fresh host.
func namespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
}

// missing says why the guide cannot be run here, "" if it can.
func missing() string {
	if os.Getuid() != 0 {
		return "the guide's commands want root"
	}
	for _, program := range []string{"adduser", "setpriv", "curl", "ip", "install"} {
		if _, err := exec.LookPath(program); err != nil {
			return err.Error()
		}
	}
	dir, err := os.MkdirTemp("", "install-")
	if err != nil {
		return err.Error()
	}
	defer os.RemoveAll(dir)
	try := exec.Command("sh", "-c", prelude, "sh", dir)
	try.SysProcAttr = namespaces()
	if out, err := try.CombinedOutput(); err != nil {
		return fmt.Sprintf("private namespaces with overlays: %v %s", err, out)
	}
	return ""
}

// checkout is a folder that looks like the repository after `make build`, readable
// by everybody.
func checkout(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"systemd", "examples"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(root, name))); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := programs.Build(bin, "muster", "muster-agent", "muster-shim", "muster-launch", "muster-coordinator"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// serfFolder has the stock serf program: that of PATH, or one of tools/go.mod.
func serfFolder(t *testing.T, root string) string {
	t.Helper()
	if path, err := exec.LookPath("serf"); err == nil {
		return filepath.Dir(path)
	}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir+"/", "github.com/hashicorp/serf/cmd/serf")
	build.Dir = filepath.Join(root, "tools")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// commands are the shell commands of one section of the guide.
func commands(t *testing.T, guide, section string) string {
	t.Helper()
	_, rest, found := strings.Cut(guide, "\n## "+section+"\n")
	if !found {
		t.Fatalf("docs/install.md has no section %q", section)
	}
	body, _, _ := strings.Cut(rest, "\n## ")
	var all []string
	for i, block := range strings.Split(body, "```") {
		if commands, is := strings.CutPrefix(block, "sh\n"); is && i%2 == 1 {
			all = append(all, commands)
		}
	}
	if len(all) == 0 {
		t.Fatalf("section %q of docs/install.md has no commands", section)
	}
	return strings.Join(slices.Concat(all, []string{""}), "\n")
}
