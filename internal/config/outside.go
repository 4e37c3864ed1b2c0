package config

// OutsideSecret returns the same value as Credentials.Secret. It works without Assay's own
// credentials, for commands that only test a provider.
func (c *Config) OutsideSecret(name string) (string, error) {
	return (&Credentials{options: c.options}).Secret(name)
}
