package api

import "net/http"

// Preconditions are values that an object must have for a change to be made. The
// zero value requires nothing.
type Preconditions struct {
	// UID is the uid that the object must have: another object of the same name is
	// left alone.
	UID string `json:"uid,omitempty" example:"alloc-7f3a2b1c-4d5e-4f7a-8b9c-0d1e2f3a4b5c"`
	// ResourceVersion is the version that the object must have: the object must not
	// have changed since.
	ResourceVersion string `json:"resourceVersion,omitempty" example:"1042"`
}

// Check refuses a change of an object of the metadata with 409, and names both
// values. what names the object in the message: "allocation web".
func (p Preconditions) Check(what string, m ObjectMeta) *Status {
	switch {
	case p.UID != "" && p.UID != m.UID:
		return Errorf(http.StatusConflict, "%s has the uid %s, the change is for the uid %s: another object has taken the name; read it again", what, m.UID, clip(p.UID))
	case p.ResourceVersion != "" && p.ResourceVersion != m.ResourceVersion:
		return Errorf(http.StatusConflict, "%s is at resourceVersion %s, the change was made from %s; read it again", what, m.ResourceVersion, clip(p.ResourceVersion))
	}
	return nil
}
