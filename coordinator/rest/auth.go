package rest

import (
	"errors"
	"net/http"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// bearer extracts the token of an Authorization header.
func bearer(header string) (string, bool) {
	scheme, token, found := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	return token, found && strings.EqualFold(scheme, "Bearer") && token != ""
}

// authenticate returns the caller or a 401 that names the missing part.
func authenticate(a service.Authenticator, r *http.Request) (service.Principal, *api.Status) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return service.Principal{}, api.Errorf(http.StatusUnauthorized, "no token: send the header Authorization: Bearer TOKEN")
	}
	token, ok := bearer(header)
	if !ok {
		return service.Principal{}, api.Errorf(http.StatusUnauthorized, "the Authorization header is not of the form: Bearer TOKEN")
	}
	p, err := a.Authenticate(r.Context(), token)
	if err == nil {
		return p, nil
	}
	var status *api.Status
	if errors.As(err, &status) {
		return service.Principal{}, status
	}
	return service.Principal{}, api.Errorf(http.StatusUnauthorized, "the token is not valid here")
}
