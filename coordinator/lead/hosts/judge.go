package hosts

import (
	"github.com/musterd/muster/grant"
)

// Holds reports whether an agent in this state has something for a transaction.
func Holds(s grant.State) bool {
	switch s {
	case grant.Reserved, grant.Held, grant.Evicting, grant.Stopping, grant.Waiting:
		return true
	case grant.None, grant.No, grant.Tombstone:
	}
	return false
}
