package postgres

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/musterd/muster/test/prerequisite"
)

// oldest is the oldest release that history/warehouse supports.
const oldest = 15

// programs is the folder of initdb and postgres: the newest release of Debian's
// packages, else the folder of the `postgres` in PATH (prerequisites.sh puts one there).
func programs(t testing.TB) string {
	t.Helper()
	newest, found := 0, ""
	folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	for _, dir := range folders {
		release, err := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		if err == nil && release >= oldest && release > newest && isProgram(dir, "postgres") && isProgram(dir, "initdb") {
			newest, found = release, dir
		}
	}
	if found != "" {
		return found
	}
	if path, err := exec.LookPath("postgres"); err == nil && isProgram(filepath.Dir(path), "initdb") {
		return filepath.Dir(path)
	}
	prerequisite.Missing(t, "PostgreSQL %d or later is missing: no /usr/lib/postgresql/*/bin and no postgres with initdb in PATH (apt-get install postgresql)", oldest)
	return ""
}

func isProgram(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// owner is the account that the server runs as; nil is the test's own. PostgreSQL
// refuses to run as root.
type owner struct{ uid, gid int }

// serverOwner is the account postgres, or nobody, where the test runs as root.
func serverOwner() *owner {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, errUID := strconv.Atoi(u.Uid)
			gid, errGID := strconv.Atoi(u.Gid)
			if errUID == nil && errGID == nil {
				return &owner{uid, gid}
			}
		}
	}
	return &owner{65534, 65534} // nobody
}

// give makes the folder the owner's.
func (o *owner) give(dir string) error {
	if o == nil {
		return nil
	}
	return os.Chown(dir, o.uid, o.gid)
}

// prepare makes the program run in dir as the owner.
func (o *owner) prepare(cmd *exec.Cmd, dir string) {
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if o != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.gid), NoSetGroups: false}
	}
}
