package edit

import (
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// AtVersion refuses a change from a version older than the object's specification, or
// from a version unknown to the object. The specification is the object's own key: a
// write of status alone, e.g. of Ready, makes no conflict.
func AtVersion(kind, name, want string, spec, has resource.Revision) *api.Status {
	if want == "" {
		return nil
	}
	from, err := strconv.ParseInt(want, 10, 64)
	if err != nil || resource.Revision(from) < spec || resource.Revision(from) > has {
		return api.Errorf(409, "%s %s is at resourceVersion %d, the change was made from %s; read it again", kind, name, has, want)
	}
	return nil
}
