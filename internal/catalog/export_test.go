package catalog

// The times of announcements.
const (
	VersionLife     = versionLife
	AnnouncedBefore = announcedBefore
)
