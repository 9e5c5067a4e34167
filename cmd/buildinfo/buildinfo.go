// Package buildinfo names the build of Muster that runs, in the same words in every
// program.
package buildinfo

import "runtime/debug"

// Release is the version under development; CHANGELOG.md lists its content.
const Release = "0.1.0-dev"

// Template is the answer of every program to --version, as a template of cobra.
const Template = "{{.Name}} {{.Version}}\n"

// Version is Release and, where the build knows it, the commit.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Release
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = "+" + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = ".dirty"
		}
	}
	if revision == "" {
		return Release
	}
	return Release + revision + dirty
}
