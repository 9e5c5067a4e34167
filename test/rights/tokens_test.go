package rights

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// credential is one way to show a token, and the answer.
type credential struct {
	headers []string
	code    int
	says    string // part of the message
}

// shown makes the credentials that nobody gets in with.
func shown(t *testing.T, h *house) map[string]credential {
	h.store.frozen.Store(false)
	defer h.store.frozen.Store(true)
	boss := service.WithCaller(t.Context(), service.Caller{Principal: service.Principal{Name: "root", Admin: true}})
	made := func(ttl time.Duration) *api.AccessToken {
		got, err := h.keeper.CreateToken(boss, &api.AccessToken{Spec: api.AccessTokenSpec{User: "eve", Role: "admin"}}, ttl)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	good, expired, revoked, rotated := h.tokens["admin"], made(time.Nanosecond), made(0), made(0)
	if _, err := h.keeper.RevokeToken(boss, revoked.Metadata.Name, api.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.keeper.RotateToken(boss, rotated.Metadata.Name, 0); err != nil {
		t.Fatal(err)
	}
	last := strings.LastIndex(good, ".") + 1
	forged := good[:last] + strings.Repeat("0", len(good)-last)
	const alike = "the token is not valid here"
	return map[string]credential{
		"no header":                           {nil, 401, "no token"},
		"an empty header":                     {[]string{""}, 401, "no token"},
		"another scheme":                      {[]string{"Basic cm9vdDpyb290"}, 401, "not of the form: Bearer TOKEN"},
		"a forged secret":                     {[]string{"Bearer " + forged}, 401, alike},
		"a forged id":                         {[]string{"Bearer muster.at-0000000000." + good[last:]}, 401, alike},
		"an expired token":                    {[]string{"Bearer " + expired.Status.Token}, 401, "expired at"},
		"a revoked token":                     {[]string{"Bearer " + revoked.Status.Token}, 401, alike},
		"a secret that was rotated away":      {[]string{"Bearer " + rotated.Status.Token}, 401, alike},
		"a token with a byte behind":          {[]string{"Bearer " + good + "0"}, 401, alike},
		"two headers, both good":              {[]string{"Bearer " + good, "Bearer " + good}, 401, "2 Authorization headers: send one"},
		"two headers, the first one good":     {[]string{"Bearer " + good, "Bearer " + forged}, 401, "2 Authorization headers: send one"},
		"two headers, the second one good":    {[]string{"Bearer " + forged, "Bearer " + good}, 401, "2 Authorization headers: send one"},
		"two tokens in one header":            {[]string{"Bearer " + good + ", Bearer " + good}, 401, alike},
		"a bootstrap token":                   {[]string{"Bearer " + hostToken}, 401, alike},
		"two headers, one of them of a host":  {[]string{"Bearer " + hostToken, "Bearer " + good}, 401, "2 Authorization headers: send one"},
		"a token of another role":             {[]string{"Bearer " + h.tokens["viewer"]}, 403, "want the role operator"},
		"a token without a role":              {[]string{"Bearer " + h.tokens["none"]}, 403, "has none"},
		"a good token of the role, which may": {[]string{"Bearer " + good}, 0, ""},
	}
}

// No credential but a good one of the right role drains a node, over REST and gRPC, and
// both doors say the same.
func TestTokensThatAreNotGood(t *testing.T) {
	h := newHouse(t)
	conn, _ := h.serveGRPC(t)
	nodes := apiv1.NewNodesClient(conn)
	for name, c := range shown(t, h) {
		t.Run(name, func(t *testing.T) {
			request, answer := httptest.NewRequest(http.MethodPost, "/api/v1/nodes/thing/drain", nil), httptest.NewRecorder()
			request.Header["Authorization"] = c.headers
			h.handler.ServeHTTP(answer, request)
			md := metadata.MD{}
			md.Append("authorization", c.headers...)
			_, err := nodes.Drain(metadata.NewOutgoingContext(t.Context(), md), &apiv1.DrainRequest{Name: "thing"})
			if c.code == 0 {
				if answerOf(answer.Code) != yes || answerOf(codeOf(err)) != yes {
					t.Errorf("refused: %d over REST, %v over gRPC", answer.Code, err)
				}
				return
			}
			if answer.Code != c.code || !strings.Contains(answer.Body.String(), c.says) {
				t.Errorf("REST answers %d %s, want %d and %q", answer.Code, answer.Body.String(), c.code, c.says)
			}
			if err == nil || codeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("gRPC answers %v, want %d and %q", err, c.code, c.says)
			}
		})
	}
}
