// Package monitor shows a leader's figures to Prometheus: nodes, models of GPUs,
// namespaces, queues and quotas, with a bounded number of series. It decides which
// names get series of their own. It reads nothing itself: its user hands it the
// figures, which are a copy.
package monitor
