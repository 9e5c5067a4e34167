// Package conformance replays the requests of the API's specification over HTTP
// against a whole cluster in this process, and compares each answer with the
// documented answer, field by field. requests.json is the specification as data:
// each documented request with its answer, and the fields of the answer that
// depend on the cluster; own.json has requests about quota trees and events, which
// Muster has beside the specification. docs/api.md lists the fields that later versions fill.
package conformance
