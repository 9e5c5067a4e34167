// Package users says as which user of the host the work of a tenant runs. It reads the
// operator's table of tenants and users and the host's own users; it starts nothing.
package users

import (
	"errors"
	"os/user"
	"strconv"

	"github.com/musterd/muster/agent/shim"
)

// Account is a user of the host.
type Account struct {
	Name string
	Home string
	ID   shim.User
}

// Env are the variables that a login would set, as NAME=VALUE.
func (a Account) Env() []string {
	return []string{"HOME=" + a.Home, "USER=" + a.Name, "LOGNAME=" + a.Name}
}

// Lookup asks the host for a user by name; it may block, where users come from a
// network. The error is user.UnknownUserError where there is no such user.
func Lookup(name string) (Account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return Account{}, err
	}
	return of(u)
}

func of(u *user.User) (Account, error) {
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	names, err3 := u.GroupIds()
	if err := errors.Join(err1, err2, err3); err != nil {
		return Account{}, err
	}
	a := Account{Name: u.Username, Home: u.HomeDir, ID: shim.User{UID: uint32(uid), GID: uint32(gid)}}
	for _, name := range names {
		if group, err := strconv.ParseUint(name, 10, 32); err == nil {
			a.ID.Groups = append(a.ID.Groups, uint32(group))
		}
	}
	return a, nil
}
