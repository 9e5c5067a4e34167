package api

// Version names the program that answers.
type Version struct {
	// Version is the program's version.
	Version string `json:"version" example:"v0.4.0"`
	// GoVersion is the version of Go that the program was built with.
	GoVersion string `json:"goVersion" example:"go1.26.0"`
	// APIVersion is the version of the API's documents.
	APIVersion string `json:"apiVersion" oneof:"muster/v1"`
}
