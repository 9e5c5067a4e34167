package main

import (
	"bytes"
	"context"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/agent/launch"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/agent/users"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "muster-agent.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func lookup(name string) (users.Account, error) {
	if name != "ada" && name != "bob" && name != "root" {
		return users.Account{}, user.UnknownUserError(name)
	}
	return users.Account{Name: name, ID: shim.User{UID: map[string]uint32{"ada": 1001, "bob": 1002}[name]}}, nil
}

// TestTheTableIsThatOfTheAgentsFile: its other keys are the agent's to judge.
func TestTheTableIsThatOfTheAgentsFile(t *testing.T) {
	c, err := readConfig(write(t, "cluster: x\nwork:\n  users: {ml: ada}\n  prolog: /etc/muster/prolog\n  helper: /run/muster-launch.sock\nattach:\n  socket: /run/muster-agent/attach.sock\n  users: {vision: bob}\n"), lookup)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := c.users.Of("ml"); err != nil || a.ID.UID != 1001 {
		t.Errorf("tenant ml has %+v: %v", a, err)
	}
	if _, err := c.users.Of("vision"); err == nil {
		t.Error("a tenant that is not in the table has a user")
	}
	if !c.attachers.IsUser(1002) || c.attachers.IsUser(1001) {
		t.Error("the users that attach are not those of the file")
	}
	if c.scripts[launch.Prolog] != "/etc/muster/prolog" || c.scripts[launch.Epilog] != "" {
		t.Errorf("scripts %q", c.scripts)
	}
}

func TestABadFileIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"work: {users: {ml: root}}":   "work.users: ml: user \"root\" is root, and work.allowRoot is not set",
		"work: {users: {ml: nobody}}": "does not exist on this host",
		"work: {epilog: epilog}":      `work.epilog: "epilog" is no absolute path`,
		"attach: {users: {ml: root}}": "attach.users: ml: user \"root\" is root",
		"work: [":                     "yaml",
	} {
		if _, err := readConfig(write(t, text), lookup); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := readConfig("/no/such/file", lookup); err == nil {
		t.Error("a file that is missing is taken")
	}
}

func TestTheHelperIsStartedBySystemdAlone(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"an argument":     {[]string{"x"}, exitUsage, `unexpected argument "x"`},
		"no such flag":    {[]string{"--x"}, exitUsage, "flag provided but not defined"},
		"help":            {[]string{"--help"}, exitDone, "muster-launch.socket"},
		"no such file":    {[]string{"--config", "/no/such/file"}, exitUsage, "/no/such/file"},
		"no such user":    {[]string{"--config", write(t, "work: {}"), "--agent-user", "no-such-user-here"}, exitUsage, "--agent-user"},
		"its own version": {[]string{"--version"}, exitDone, "muster-launch"},
	} {
		var out bytes.Buffer
		if code := run(context.Background(), c.args, &out); code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: code %d and %q, want %d and %q", name, code, out.String(), c.code, c.want)
		}
	}
}
