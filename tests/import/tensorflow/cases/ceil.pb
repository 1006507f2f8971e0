
;
x0Placeholder*
dtype0*
shape:

CeilCeilx0*
T0
#
IdentityIdentityCeil*
T0