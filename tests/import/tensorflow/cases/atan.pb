
;
x0Placeholder*
dtype0*
shape:

AtanAtanx0*
T0
#
IdentityIdentityAtan*
T0