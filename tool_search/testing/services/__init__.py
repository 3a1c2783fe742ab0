"""Rules of single services, whatever their dialect."""
