package api

import (
	"strings"
	"testing"
)

// A token's user is what records and the audit show as the actor, so no token has the
// name of another kind of actor.
func TestUsersOfTokens(t *testing.T) {
	for user, want := range map[string]string{
		"ada@example.org":        "",
		"ci":                     "",
		"administrator":          "",
		"operators/ada":          "",
		"viewer-of-vision":       "",
		"admin":                  "reserved",
		"Admin":                  "reserved",
		" ADMIN ":                "reserved",
		"viewer":                 "reserved",
		"editor":                 "reserved",
		"tenant-admin":           "reserved",
		"operator":               "reserved",
		"node":                   "reserved",
		"node:gpu-1":             "reserved",
		"system:masters":         "reserved",
		"System:x":               "reserved",
		"oidc:ada@example.org":   "reserved",
		"OIDC:ada@example.org":   "reserved",
		"/etc/muster/admin.toke": "reserved",
		"../admin.token":         "reserved",
		"./admin.token":          "reserved",
		"~/admin.token":          "reserved",
		"cert:ada":               "client certificates",
		"cert:admin":             "reserved",
	} {
		spec := AccessTokenSpec{User: user, Role: RoleViewer, Tenant: "vision"}
		status := spec.Validate()
		switch {
		case status == nil && want == "":
		case status == nil || want == "":
			t.Errorf("%q: got %v, want %q", user, status, want)
		case status.Code != 422 || !strings.Contains(status.Message, "spec.user: ") || !strings.Contains(status.Message, want):
			t.Errorf("%q: got %v, want 422 with spec.user and %q", user, status, want)
		}
	}
}
