package grpcapi

import (
	"net/http"

	"github.com/musterd/muster/api"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

// first is the first refusal.
func first(statuses ...*api.Status) *api.Status {
	for _, s := range statuses {
		if s != nil {
			return s
		}
	}
	return nil
}

// inNamespace refuses a key that can name nothing in a namespace.
func inNamespace(k *musterv1.QuotaKey) *api.Status {
	if !api.IsSubdomain(k.GetName()) {
		return api.Errorf(http.StatusBadRequest, "name: %.120q is not an RFC 1123 subdomain (1..253 of a-z, 0-9, '-' and '.')", k.GetName())
	}
	return ofNamespace(k.GetNamespace())
}

func ofNamespace(name string) *api.Status {
	if api.IsLabel(name) {
		return nil
	}
	return api.Errorf(http.StatusBadRequest, "namespace: %.120q is not an RFC 1123 label (1..63 of a-z, 0-9 and '-')", name)
}

// ofTree refuses a key that can name no tree and no forest.
func ofTree(k *musterv1.QuotaKey) *api.Status {
	if api.IsTreeName(k.GetName()) {
		return nil
	}
	return api.Errorf(http.StatusBadRequest, "name: %.120q is not one of a quota tree or forest (1..63 letters, digits, '-', '_' or '.')", k.GetName())
}
