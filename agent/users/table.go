package users

import (
	"errors"
	"fmt"
	"maps"
	"os/user"
	"regexp"
	"slices"

	"github.com/musterd/muster/resource"
)

// Others is the key of a Table that stands for all tenants without a key of their own.
const Others = "*"

// MaxTenants bounds the keys of a Table.
const MaxTenants = 10_000

// Table is the operator's table of tenants and users. A tenant that is not in the table
// has no work on the host. A nil Table has no tenant.
type Table struct {
	names     map[string]string
	allowRoot bool
	lookup    func(name string) (Account, error)
}

var tenant = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// NewTable checks names, a user's name by tenant or Others, against the users of the host,
// which lookup finds ([Lookup]). root, or another user of number 0, is refused without
// allowRoot. The error has one line for each wrong tenant, which begins with its key.
func NewTable(names map[string]string, allowRoot bool, lookup func(name string) (Account, error)) (*Table, error) {
	if len(names) > MaxTenants {
		return nil, fmt.Errorf("%d tenants, want at most %d", len(names), MaxTenants)
	}
	t := &Table{names: maps.Clone(names), allowRoot: allowRoot, lookup: lookup}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(names)) {
		if key != Others && !tenant.MatchString(key) {
			errs = append(errs, fmt.Errorf("%.80q: user %.80q: the key is no name of a tenant, 1 to 63 of a-z, 0-9 and '-', or \"*\" for all others", key, names[key]))
			continue
		}
		if _, err := t.account(names[key]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}
	return t, errors.Join(errs...)
}

// Of is the user of a tenant as the host knows it now; it may block. The error is for the
// tenant's people, who see neither the table nor the host.
func (t *Table) Of(id resource.TenantID) (Account, error) {
	if t == nil {
		return Account{}, errors.New("this node runs the work of no tenant")
	}
	name, ok := t.names[string(id)]
	if !ok {
		name, ok = t.names[Others]
	}
	if !ok {
		return Account{}, fmt.Errorf("this node has no user for the work of tenant %q: an operator adds one to work.users of the agent's configuration", id)
	}
	return t.account(name)
}

// IsUser reports whether a user has the work of any tenant, as the host knows the names now;
// it may block.
func (t *Table) IsUser(uid uint32) bool {
	if t == nil {
		return false
	}
	for _, name := range slices.Compact(slices.Sorted(maps.Values(t.names))) {
		if a, err := t.account(name); err == nil && a.ID.UID == uid {
			return true
		}
	}
	return false
}

func (t *Table) account(name string) (Account, error) {
	a, err := t.lookup(name)
	if unknown := user.UnknownUserError(""); errors.As(err, &unknown) {
		return Account{}, fmt.Errorf("user %.80q does not exist on this host", name)
	} else if err != nil {
		return Account{}, fmt.Errorf("user %.80q: %w", name, err)
	}
	if a.ID.UID == 0 && !t.allowRoot {
		return Account{}, fmt.Errorf("user %.80q is root, and work.allowRoot is not set", name)
	}
	return a, nil
}
