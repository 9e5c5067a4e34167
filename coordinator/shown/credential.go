package shown

import (
	"strconv"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/api/text"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// AccessToken shows a token of a revision without its secrets, as the token is at a
// time. At the zero time no secret and no token has ended. No other token gets the same
// id, so the id is the uid too.
func AccessToken(rec *record.AccessToken, at resource.Revision, now time.Time) *api.AccessToken {
	t := &api.AccessToken{
		APIVersion: api.APIVersion, Kind: api.KindAccessToken,
		Metadata: api.ObjectMeta{Name: rec.ID, UID: rec.ID, CreationTimestamp: rec.Created, ResourceVersion: strconv.FormatInt(int64(at), 10)},
		Spec: api.AccessTokenSpec{
			User: rec.User, Role: rec.Role, Tenant: rec.Tenant, Namespaces: rec.Namespaces, PriorityCeiling: rec.Ceiling, Description: rec.Description,
		},
		Status: api.AccessTokenStatus{Expires: rec.Expires, Expired: hasEnded(rec.Expires, now), Creator: rec.Creator},
	}
	for i, s := range rec.Secrets {
		if !hasEnded(s.Expires, now) {
			t.Status.Secrets++
			if i > 0 {
				t.Status.OverlapEnds = s.Expires
			}
		}
	}
	if c := rec.Certificate; c != nil {
		t.Status.Serial = c.Serial
		return t
	}
	if newest := rec.Secrets[0].Created; newest != rec.Created {
		t.Status.Rotated = newest
	}
	return t
}

// hasEnded reports whether the time of a record has passed. The text was checked when
// the record was decoded; an empty text is never.
func hasEnded(text string, now time.Time) bool {
	end, err := time.Parse(time.RFC3339, text)
	return err == nil && !end.After(now)
}

// RoleBinding shows the binding of a key, with the server's part of its metadata.
func RoleBinding(kv record.KV) (*api.RoleBinding, error) {
	rec, err := record.Decode[record.Object](kv.Key, kv.Value)
	if err != nil {
		return nil, err
	}
	b, status := text.Stored(api.DecodeRoleBinding, rec.Document)
	if status != nil {
		return nil, status
	}
	b.Metadata.Name, b.Metadata.UID, b.Metadata.CreationTimestamp = rec.Name, rec.UID, rec.Created
	b.Metadata.ResourceVersion = strconv.FormatInt(int64(kv.ModRev), 10)
	return b, nil
}
