package service

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/musterd/muster/api"
)

// Authenticate returns the caller by the header "Authorization: Bearer TOKEN" or, without
// the header, by the client certificate; else a 401 that names the missing part. A
// request with two such headers is refused: a proxy in between may judge the one and the
// coordinator the other. A certificate beside a token proves nothing.
func Authenticate(ctx context.Context, a Authenticator, shown Proofs) (Principal, *api.Status) {
	headers := shown.Authorization
	if len(headers) > 1 {
		return Principal{}, api.Errorf(http.StatusUnauthorized, "%d Authorization headers: send one", len(headers))
	}
	if shown.hasToken() {
		token, ok := bearer(headers[0])
		if !ok {
			return Principal{}, api.Errorf(http.StatusUnauthorized, "the Authorization header is not of the form: Bearer TOKEN")
		}
		p, err := a.Authenticate(ctx, token)
		return p, unproven(err)
	}
	if certified, is := a.(Certified); is && len(shown.Chain) > 0 {
		p, err := certified.AuthenticateCertificate(shown.Chain, shown.PassedOn)
		return p, unproven(err)
	}
	return Principal{}, api.Errorf(http.StatusUnauthorized, "no token: send the header Authorization: Bearer TOKEN")
}

// unproven is the refusal of a caller who has proven nothing; nil for no error.
func unproven(err error) *api.Status {
	if err == nil {
		return nil
	}
	var status *api.Status
	if errors.As(err, &status) {
		return status
	}
	return api.Errorf(http.StatusUnauthorized, "the token is not valid here")
}

// bearer extracts the token of an Authorization header.
func bearer(header string) (string, bool) {
	scheme, token, found := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	return token, found && strings.EqualFold(scheme, "Bearer") && token != ""
}

// MaxWait bounds how long a request may wait for its object.
const MaxWait = 10 * time.Minute

// CheckKey refuses an idempotency key that is too long or no visible text.
func CheckKey(id string) *api.Status {
	if len(id) > 128 {
		return api.Errorf(http.StatusBadRequest, "Idempotency-Key has %d characters, the limit is 128", len(id))
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return api.Errorf(http.StatusBadRequest, "Idempotency-Key %q: want printable ASCII without spaces", id)
		}
	}
	return nil
}

// CheckNamespace refuses a name that no namespace can have.
func CheckNamespace(name string) *api.Status {
	if api.IsLabel(name) {
		return nil
	}
	return api.Errorf(http.StatusBadRequest, "namespace %q is not an RFC 1123 label (1..63 of a-z, 0-9 and '-')", Clip(name))
}

// CheckName refuses a name that no object of a kind can have.
func CheckName(kind Kind, name string) *api.Status {
	switch kind {
	case KindQuotaTrees, KindQuotaForests:
		if !api.IsTreeName(name) {
			return api.Errorf(http.StatusBadRequest, "name %q is not one of a quota tree or forest (1..63 letters, digits, '-', '_' or '.')", Clip(name))
		}
	case KindResources:
		if !api.IsResourceName(name) {
			return api.Errorf(http.StatusBadRequest, "name %q is not one of a resource (NAME or DOMAIN/NAME, as in nvidia.com/gpu)", Clip(name))
		}
	case KindQuotaBindings, KindNamespaces:
		return CheckNamespace(name)
	case KindPriorityClasses:
		if !api.IsSubdomain(name) {
			return api.Errorf(http.StatusBadRequest, "name %q is not one of a priority class (1..253 of a-z, 0-9, '-' and '.')", Clip(name))
		}
	case KindQueues:
		if !api.IsLabel(name) {
			return api.Errorf(http.StatusBadRequest, "name %q is not one of a queue (1..63 of a-z, 0-9 and '-')", Clip(name))
		}
	default:
		if !api.IsSubdomain(name) {
			return api.Errorf(http.StatusBadRequest, "name %q is not an RFC 1123 subdomain (1..253 of a-z, 0-9, '-' and '.')", Clip(name))
		}
	}
	return nil
}
