package users

import (
	"errors"
	"os/user"
	"strings"
	"testing"

	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/resource"
)

// hostUsers is a host with some users, which may change.
type hostUsers map[string]Account

func (h hostUsers) lookup(name string) (Account, error) {
	switch a, ok := h[name]; {
	case name == "broken":
		return Account{}, errors.New("the directory does not answer")
	case !ok:
		return Account{}, user.UnknownUserError(name)
	default:
		return a, nil
	}
}

func newHost() hostUsers {
	return hostUsers{
		"ada":  {Name: "ada", Home: "/home/ada", ID: shim.User{UID: 1001, GID: 1001, Groups: []uint32{44, 1001}}},
		"all":  {Name: "all", Home: "/nonexistent", ID: shim.User{UID: 1002, GID: 1002}},
		"root": {Name: "root", Home: "/root"},
		"toor": {Name: "toor", Home: "/root", ID: shim.User{GID: 7}},
	}
}

func TestATenantHasItsUserElseThatOfAllOthers(t *testing.T) {
	for name, c := range map[string]struct {
		names map[string]string
		want  map[string]string // by tenant: the user, or a part of the error
	}{
		"of its own": {map[string]string{"ml": "ada", "*": "all"}, map[string]string{"ml": "ada", "vision": "all", "": "all"}},
		"alone":      {map[string]string{"ml": "ada"}, map[string]string{"ml": "ada", "vision": `no user for the work of tenant "vision"`, "": `tenant ""`}},
		"none":       {nil, map[string]string{"ml": "work.users of the agent's configuration"}},
	} {
		t.Run(name, func(t *testing.T) {
			table, err := NewTable(c.names, false, newHost().lookup)
			if err != nil {
				t.Fatal(err)
			}
			for tenant, want := range c.want {
				a, err := table.Of(resource.TenantID(tenant))
				if err != nil && !strings.Contains(err.Error(), want) || err == nil && a.Name != want {
					t.Errorf("tenant %q has %+v: %v, want %s", tenant, a, err, want)
				}
			}
		})
	}
	if _, err := (*Table)(nil).Of("ml"); err == nil {
		t.Error("no table has a user")
	}
}

func TestAWrongTableIsRefusedWithEachKey(t *testing.T) {
	_, err := NewTable(map[string]string{"a b": "ada", "ML": "ada", "": "ada", "x": "nobody-knows", "y": "root", "z": "toor", "w": "broken", "ok": "ada", "v": ""}, false, newHost().lookup)
	if err == nil {
		t.Fatal("it is taken")
	}
	lines := strings.Split(err.Error(), "\n")
	for i, want := range []string{
		`"": user "ada": the key is no name of a tenant`, `"ML": user "ada": the key`, `"a b": user`, `v: user "" does not exist`, `w: user "broken": the directory does not answer`, `x: user "nobody-knows" does not exist on this host`,
		`y: user "root" is root, and work.allowRoot is not set`, `z: user "toor" is root`,
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d of %q, want %s", i, lines, want)
		}
	}
	if _, err := NewTable(map[string]string{"y": "root"}, true, newHost().lookup); err != nil {
		t.Errorf("root is allowed: %v", err)
	}
}

// TestAUserIsLookedUpAtEachStart: a user that was removed, or whose number is now root's,
// starts nothing more.
func TestAUserIsLookedUpAtEachStart(t *testing.T) {
	host := newHost()
	table, err := NewTable(map[string]string{"ml": "ada"}, false, host.lookup)
	if err != nil {
		t.Fatal(err)
	}
	host["ada"] = Account{Name: "ada", Home: "/srv/ada", ID: shim.User{UID: 2001, GID: 2001}}
	if a, err := table.Of("ml"); err != nil || a.ID.UID != 2001 || a.Home != "/srv/ada" {
		t.Errorf("%+v: %v, want the user as it is now", a, err)
	}
	host["ada"] = Account{Name: "ada"}
	if _, err := table.Of("ml"); err == nil || !strings.Contains(err.Error(), "is root") {
		t.Errorf("%v, want a refusal of root", err)
	}
	delete(host, "ada")
	if _, err := table.Of("ml"); err == nil || !strings.Contains(err.Error(), `user "ada" does not exist`) {
		t.Errorf("%v, want the name of the user that is gone", err)
	}
}

func TestTheHostsOwnRootIsFound(t *testing.T) {
	a, err := Lookup("root")
	if err != nil || a.ID.UID != 0 || a.Home == "" || a.Env()[1] != "USER=root" {
		t.Errorf("%+v: %v", a, err)
	}
	if _, err := NewTable(map[string]string{"*": "no-such-user-here"}, false, Lookup); err == nil || !strings.Contains(err.Error(), `*: user "no-such-user-here" does not exist`) {
		t.Errorf("%v", err)
	}
}
