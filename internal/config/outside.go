package config

// OutsideSecret returns what Credentials.Secret does, for a command that serves no
// requests and needs no credentials of its own: one that only tests a provider.
func (c *Config) OutsideSecret(name string) (string, error) {
	return (&Credentials{options: c.options}).Secret(name)
}
