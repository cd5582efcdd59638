"""What a site pays and earns: power, cooling, prices, carbon, tariffs. Nothing here knows of schedules."""
