package sdk_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/musterd/muster/sdk"
)

// queries notes the query of each request and answers with an empty document.
type queries []string

// RoundTrip implements http.RoundTripper.
func (q *queries) RoundTrip(r *http.Request) (*http.Response, error) {
	*q = append(*q, r.URL.Path+"?"+r.URL.RawQuery)
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
}

// A typed get of each kind takes the state that it is to show.
func TestGetsTakeAVersion(t *testing.T) {
	asked := &queries{}
	c, err := sdk.NewClient(sdk.Config{Endpoint: "https://coordinator", Token: "t", HTTPClient: &http.Client{Transport: asked}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, o := t.Context(), sdk.GetOptions{ResourceVersion: "0"}
	for path, get := range map[string]func(...sdk.GetOptions) error{
		"nodes/x":                        func(o ...sdk.GetOptions) error { _, err := c.Nodes().Get(ctx, "x", o...); return err },
		"queues/x":                       func(o ...sdk.GetOptions) error { _, err := c.Queues().Get(ctx, "x", o...); return err },
		"tenants/x":                      func(o ...sdk.GetOptions) error { _, err := c.Tenants().Get(ctx, "x", o...); return err },
		"quotatrees/x":                   func(o ...sdk.GetOptions) error { _, err := c.QuotaTrees().Get(ctx, "x", o...); return err },
		"namespaces/ml/resourcequotas/x": func(o ...sdk.GetOptions) error { _, err := c.ResourceQuotas("ml").Get(ctx, "x", o...); return err },
		"namespaces/ml/events/x":         func(o ...sdk.GetOptions) error { _, err := c.Events("ml").Get(ctx, "x", o...); return err },
		"namespaces/ml/jobs/x": func(o ...sdk.GetOptions) error {
			_, err := c.Jobs("ml").Get(ctx, "x", append(o, sdk.GetOptions{})[0])
			return err
		},
	} {
		for want, options := range map[string][]sdk.GetOptions{"": nil, "resourceVersion=0": {o}} {
			*asked = nil
			if err := get(options...); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if full := "/api/v1/" + path + "?" + want; len(*asked) != 1 || (*asked)[0] != full {
				t.Errorf("asked for %v, want %s", *asked, full)
			}
		}
	}
}
