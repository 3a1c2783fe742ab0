"""A page that shows the requests of a proxy or a gateway, and what tool search did in them."""
