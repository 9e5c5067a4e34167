package hosts

import (
	"github.com/musterd/muster/grant"
)

func EqualMember(a, b grant.Member) bool {
	return a.Index == b.Index && a.Assignment.Equal(b.Assignment)
}
