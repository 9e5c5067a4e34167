package api

// Version says which program answers.
type Version struct {
	Version    string `json:"version"`
	GoVersion  string `json:"goVersion"`
	APIVersion string `json:"apiVersion"`
}
