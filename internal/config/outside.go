package config

// OutsideSecret returns what Credentials.Secret does, for a program that serves
// nobody and so needs no credentials of its own: one that only tries a source.
func (c *Config) OutsideSecret(name string) (string, error) {
	return (&Credentials{options: c.options}).Secret(name)
}
