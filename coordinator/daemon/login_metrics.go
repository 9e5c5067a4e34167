package daemon

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/coordinator/oidc"
)

// countLogins registers the series of the identity provider, which are zero where there
// is no provider.
func countLogins(v *oidc.Verifier, registry prometheus.Registerer) {
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "muster_coordinator_oidc_keys", Help: "Keys of the identity provider that are known.",
	}, func() float64 { return float64(v.Counts().Keys) }))
	for _, c := range []struct {
		name, help, result string
		value              func(oidc.Counts) uint64
	}{
		{oidcFetches, oidcFetchesHelp, "done", func(c oidc.Counts) uint64 { return c.Fetched }},
		{oidcFetches, oidcFetchesHelp, "failed", func(c oidc.Counts) uint64 { return c.Failed }},
		{oidcTokens, oidcTokensHelp, "accepted", func(c oidc.Counts) uint64 { return c.Accepted }},
		{oidcTokens, oidcTokensHelp, "refused", func(c oidc.Counts) uint64 { return c.Refused }},
		{oidcTokens, oidcTokensHelp, "keys_unknown", func(c oidc.Counts) uint64 { return c.Away }},
	} {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: c.name, Help: c.help, ConstLabels: prometheus.Labels{"result": c.result},
		}, func() float64 { return float64(c.value(v.Counts())) }))
	}
}

const (
	oidcFetches     = "muster_coordinator_oidc_fetches_total"
	oidcFetchesHelp = "Fetches of the keys of the identity provider, by result."
	oidcTokens      = "muster_coordinator_oidc_tokens_total"
	oidcTokensHelp  = "Tokens of the identity provider that were judged, by result. A token that was accepted before is not judged again."
)
